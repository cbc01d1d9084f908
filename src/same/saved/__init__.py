"""A trained model in memory and on disk. The folder of a run is the folder of a model with checkpoints."""

from same.saved.added import AddedTask, add_task
from same.saved.format import begin, check_folder, finish, finished, read, read_history
from same.saved.trained import Custom, Trained, build, load_trained, save_trained

__all__ = ["begin", "check_folder", "finish", "finished", "read", "read_history"]
__all__ += ["AddedTask", "Custom", "Trained", "add_task", "build", "load_trained", "save_trained"]
