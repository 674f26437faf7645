"""The movements of money as small functions: a command goes in, a posting request or a refusal comes out.

Only what a command says of itself is judged here. What depends on the accounts is judged in `posting`, under the locks.
"""
