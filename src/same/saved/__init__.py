"""A trained model in memory and on disk. The folder of a run is the folder of a model with checkpoints."""

from same.saved.format import begin as begin
from same.saved.format import check_folder as check_folder
from same.saved.format import finish as finish
from same.saved.format import finished as finished
from same.saved.format import read as read
from same.saved.format import read_history as read_history
from same.saved.trained import Custom as Custom
from same.saved.trained import Trained as Trained
from same.saved.trained import build as build
from same.saved.trained import load_trained as load_trained
from same.saved.trained import save_trained as save_trained
