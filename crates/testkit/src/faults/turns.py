# A server that answers GET over kept connections, one thread a connection, and computes for some milliseconds each time.
import socketserver
import sys


class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline():
            while self.rfile.readline().strip():
                pass
            sum(range(100_000))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


Server(("", int(sys.argv[1])), Answers).serve_forever()
