"""`python -m same` is the command `same`; `torchrun` needs it so."""

from same.cli import main

main()
