/**
 * The console on Node's own HTTP: as a listener for `createServer`, Express, Fastify and Nest, and as a server of its own.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { Console } from "./Console.ts"
import * as Host from "./internal/guard/host.ts"

/** The URL that was asked for; Express takes the path where it mounts something out of `url`. */
const urlOf = (incoming: IncomingMessage & { readonly originalUrl?: string }): URL =>
  new URL(`http://${incoming.headers.host ?? "invalid"}${incoming.originalUrl ?? incoming.url ?? "/"}`)

const requestOf = (incoming: IncomingMessage): Request => {
  const { headers, method = "GET" } = incoming
  const hasBody = method !== "GET" && method !== "HEAD"
  const given = new Headers()
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) given.set(name, String(value))
  return new Request(urlOf(incoming), {
    method,
    headers: given,
    ...(hasBody ? { body: Readable.toWeb(incoming), duplex: "half" } : {})
  })
}

const respond = async (response: Response, outgoing: ServerResponse, isHead: boolean): Promise<void> => {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  if (response.body === null || isHead) {
    await response.body?.cancel()
    outgoing.end()
    return
  }
  // A client that leaves cancels the stream.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => undefined)
}

/**
 * A listener for requests of Node. The address of the socket is the client's: headers of proxies are not read, so that nobody
 * can claim another one.
 */
export const listener =
  ({ fetch }: Pick<Console, "fetch">): RequestListener =>
  (incoming, outgoing) => {
    const answer = async () => {
      const request = requestOf(incoming)
      const response = await fetch(request, { address: incoming.socket.remoteAddress ?? "" })
      await respond(response, outgoing, request.method === "HEAD")
    }
    // A request that is none, as with a host that is no host.
    answer().catch(() => outgoing.writeHead(400).end())
  }

/** Where a server listens. */
export interface Options {
  /** The address. Default: 127.0.0.1. */
  readonly host?: string | undefined
  /** The port; 0 for any that is free. Default: 4747. */
  readonly port?: number | undefined
}

/** The port unless another one is given. */
export const defaultPort = 4747

const isLoopback = (host: string): boolean => host === "localhost" || Host.isLoopbackAddress(host)

/**
 * Serves a console until the scope closes, and answers its URL. Fails with the error of Node when the address is taken.
 *
 * @throws RangeError when a console without authentication is to listen to more than this machine
 */
export const serve = (
  requeue: Console,
  { host = "127.0.0.1", port = defaultPort }: Options = {}
): Effect.Effect<URL, Error, Scope.Scope> => {
  if (requeue.isOpen && !isLoopback(host)) {
    throw new RangeError(
      `NodeServer.serve: a console on ${host} must have authentication. Give authorize, or listen on 127.0.0.1`
    )
  }
  const listen = Effect.callback<Server, Error>((resume) => {
    const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 30_000 }, listener(requeue))
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen(port, host, () => resume(Effect.succeed(server)))
  })
  const close = (server: Server) =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      // Streams of events would go on.
      server.closeAllConnections()
    })
  return Effect.map(Effect.acquireRelease(listen, close), (server) => {
    const address = server.address()
    const name = host.includes(":") ? `[${host}]` : host
    return new URL(`http://${name}:${typeof address === "object" && address !== null ? address.port : port}/`)
  })
}
