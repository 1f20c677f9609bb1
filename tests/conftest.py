"""What all tests share: a real Redis, and how `make test` spreads them over processes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import os
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import docker
import docker.errors
import grpc
import pytest
import redis.asyncio as redis_asyncio
import requests
from redis import Redis

from deploy.redis_server import RedisServer

REDIS_IMAGE = "redis:8-alpine"

# Most tests wait for a process, a socket or a clock more than they compute.
_PROCESSES_A_CORE = 1.5


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many processes `-n auto` is: none beside this one for tests picked out, which may be over before others have started."""
    picked = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.option.keyword or config.getoption("lf", False)
    return 0 if picked or os.environ.get("REDIS_URL") else math.ceil(_PROCESSES_A_CORE * (os.cpu_count() or 1))


def pytest_configure(config: pytest.Config) -> None:
    """Refuses processes that would empty each other's database (where REDIS_URL is not set each has a Redis of its own); gRPC stays."""
    if config.getoption("numprocesses", None) and os.environ.get("REDIS_URL"):
        raise pytest.UsageError("REDIS_URL names one database, which every test empties: run the tests in one process (-n 0).")
    asyncio.run(_keep_grpc())


async def _keep_grpc() -> None:
    """Counts one more user of gRPC, who never leaves.

    Else its core and its poller end with each test and begin again with the next, hundreds of times in a process, which no server does: a
    run once hung for good between two tests that use it.
    """
    grpc.aio.init_grpc_aio()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis for this run: REDIS_URL's, else one in a container where a Docker engine answers, else an embedded one."""
    with ExitStack() as stack:
        url = os.environ.get("REDIS_URL")
        if url:
            with Redis.from_url(url) as client:
                if client.dbsize():
                    pytest.exit("The database of REDIS_URL is not empty, and the tests would empty it. Name another, or flush it.", 2)
        else:
            url = _container(stack)
        if url is None:
            url = stack.enter_context(RedisServer(tmp_path_factory.mktemp("redis"))).url
        yield url
        with Redis.from_url(url) as client:
            client.flushdb()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[redis_asyncio.Redis]:
    """A client of an empty database."""
    async with redis_asyncio.from_url(redis_url) as client:
        await client.flushdb()
        yield client


def _container(stack: ExitStack) -> str | None:
    """The address of a container's Redis, or None when there is no engine, or it cannot get the image."""
    with warnings.catch_warnings():
        # Where no engine listens, docker leaves its socket to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        answers = _docker_answers()
        gc.collect()
    if not answers:
        return None
    from testcontainers.community.redis import RedisContainer

    try:
        container = stack.enter_context(RedisContainer(REDIS_IMAGE))
        return f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"
    except (docker.errors.DockerException, requests.RequestException, TimeoutError):
        return None


def _docker_answers() -> bool:
    try:
        with contextlib.closing(docker.from_env(timeout=3)) as engine:
            return bool(engine.ping())
    except (docker.errors.DockerException, requests.RequestException):
        return False
