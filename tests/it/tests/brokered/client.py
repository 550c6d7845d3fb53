"""Sends the requests of a table to the raw server, each on a connection of its own, and prints the answers."""
import json, os, socket, ssl, sys

context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
for number, pieces in enumerate(json.load(open(sys.argv[1]))):
    print(f"<{number}>", flush=True)
    answer = b""
    try:
        with socket.create_connection(("allowed.test", 9445), timeout=5) as plain:
            with context.wrap_socket(plain, server_hostname="allowed.test") as stream:
                for piece in pieces:
                    stream.sendall(piece.replace("{T}", os.environ["RAW_TOKEN"]).encode("latin-1"))
                stream.settimeout(float(sys.argv[2]))
                while piece := stream.recv(65536):
                    answer += piece
    except OSError as error:
        answer += f"\n({error})".encode()
    print(answer.decode("latin-1"))
    print(f"</{number}>", flush=True)
