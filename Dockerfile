# The two commands of the README in a container:
#
#     docker build --tag quoll .
#     docker run quoll                 # the bounds of the shipped kernel
#     docker run quoll make test       # lint, types and every test
FROM debian:12
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git make python3 python3-venv
WORKDIR /quoll
COPY . .
RUN make setup kernel recorder
CMD ["make", "analyse"]
