"""Every other classifier of the paper's tables, under the contract of `oneclass.checks`."""
