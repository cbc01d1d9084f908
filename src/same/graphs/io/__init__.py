"""Readers and writers of graphs: files, downloads, and objects of other libraries."""
