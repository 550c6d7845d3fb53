# Keeps as many connections open as it can: `python3 crowd.py HOST PORT COUNT`. Prints how many there are, and what two of
# them and a later one give.
import concurrent.futures, resource, socket, ssl, sys

host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
context = ssl.create_default_context()
request = f"GET /a HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


def connect(_number):
    try:
        return context.wrap_socket(socket.create_connection((host, port), 60), server_hostname=host)
    except OSError:
        return None


def answer(connection):
    connection.sendall(request)
    return connection.recv(12).decode()


with concurrent.futures.ThreadPoolExecutor(16) as pool:
    held = [connection for connection in pool.map(connect, range(count)) if connection]
print("HELD", len(held))
print("FIRST", answer(held[0]), "LAST", answer(held[-1]), flush=True)
for connection in held:
    connection.close()
print("AFTERWARDS", answer(connect(0)))
