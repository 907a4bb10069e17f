# Every target sets up what it needs; nothing is done twice when nothing changed.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SYSTEM_PYTHON ?= python3

.PHONY: demo test browser tex lint format results docs man notebooks clean

demo: $(READY)
	$(BIN)/fullmatch train digits --labels 40 --baseline

# Two processes of one thread each: the tests are many and small.
test: $(READY) browser tex
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-fail-under=90 --cov-report=term:skip-covered

# Pages are tested in a real browser: Debian's chromium, installed here where that is possible.
browser:
	@test -x /usr/bin/chromium -a -x /usr/bin/chromedriver \
	  || { apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } \
	  || { echo "The tests need chromium and chromedriver in /usr/bin: install them first."; exit 1; }

# Tables are compiled as a paper would: Debian's pdflatex, installed here where that is possible.
tex:
	@kpsewhich booktabs.sty > /dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends texlive-latex-recommended; } \
	  || { echo "The tests need pdflatex with booktabs: install them first."; exit 1; }

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The tables of docs/results.md, from the ledger in docs/results/.
results: $(READY)
	$(BIN)/fullmatch reproduce page

# The site, in docs/_build/html: every warning is an error, and it is read without a network.
docs: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# The help of all commands as a man page.
man: $(READY)
	$(BIN)/python docs/command_help.py docs/_build/man/fullmatch.1

# The outputs that the site shows, from running every notebook.
notebooks: $(READY)
	$(BIN)/python docs/notebooks/execute.py

# uv installs in seconds; where it cannot be had or fails, pip does the same, slower.
WANTED := -c constraints.txt -e '.[dev,docs,export,hub,mlflow,notebook,sweep,tensorboard,wandb]'

$(READY): pyproject.toml constraints.txt
	@$(SYSTEM_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "fullmatch needs Python 3.11 or newer: set SYSTEM_PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(SYSTEM_PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (torch is large: the first time takes some minutes) ..."
	@{ $(BIN)/python -m pip install --quiet --disable-pip-version-check uv \
	  && UV_SYSTEM_CERTS=true $(BIN)/uv pip install --quiet --python $(BIN)/python $(WANTED); } \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check $(WANTED)
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .coverage
