"""Hyperparameter search: find the configuration of a method with the best validation score."""
