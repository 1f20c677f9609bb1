"""The gateway: sign-in, matchmaking, REST. It knows games by one registry line each and their protobuf descriptors."""
