"""Networks: encoders, heads, and the model that joins them."""

from same.nn.encoders import Encoder, PyGEncoder
from same.nn.heads import GraphHead, NodeHead, PairHead
from same.nn.model import Model
from same.nn.pairs import pair_features
from same.nn.pooling import pool_nodes
from same.nn.sparse import propagate

__all__ = ["Encoder", "GraphHead", "Model", "NodeHead", "PairHead", "PyGEncoder", "pair_features", "pool_nodes"]
__all__ += ["propagate"]
