"""A long training on a stream that is killed, starved, fed bad batches and resumed, against an undisturbed twin.

``make soak MINUTES=30`` (``python -m tests.soak --minutes 30``) trains one learner after the other in a process of its
own. Each life of this process has a `Plan`: a signal at some moment, a bad batch, a full disk, a clock that jumps. When
the stream is learned to its end, the model, deep inside too, must be that of a twin to which nothing happened.
"""
