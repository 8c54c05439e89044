/**
 * The receiver: an HTTP server on this machine that plays all subscribers. It checks the signature of every request, and records
 * it with its time. It does not know the queues, so its record shows the dispatcher from outside.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { type Reply, replyOf, type EndpointName, isEndpoint, latencyOf } from "./endpoints.ts"
import { verify } from "./signature.ts"

/** One request. Times are milliseconds of `performance.now()`. */
export interface Visit {
  readonly id: string
  readonly endpoint: EndpointName
  readonly attempt: number
  readonly at: number
  readonly answer: Reply["_tag"]
  /** The time before which it must not be sent again; `undefined` if the reply has no Retry-After. */
  readonly notBefore: number | undefined
  /** Whether a 2xx was sent. */
  accepted: boolean
}

export interface Receiver {
  readonly urlOf: (endpoint: string) => URL
  /** Every signed request to an endpoint, in the order of arrival. */
  readonly visits: ReadonlyArray<Visit>
  /** The number of rejected requests: without a valid signature, or to no endpoint. */
  readonly rejected: () => number
  /** Makes every endpoint reply 2xx from now on. */
  readonly heal: () => void
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export interface ReceiverOptions {
  readonly seed: number
  readonly secret: string
  /** Called before the answer to each accepted request. */
  readonly onAccepted?: (id: string) => void
}

/** The largest body, in bytes: GitHub's payloads have 25 MB at most. */
const maxBody = 25 * 1024 * 1024

export const startReceiver = async ({ onAccepted, secret, seed }: ReceiverOptions): Promise<Receiver> => {
  const visits: Array<Visit> = []
  let rejected = 0
  let healed = false

  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const at = performance.now()
    const endpoint = request.url?.split("/").at(-1) ?? ""
    const body = await read(request)
    const known = request.method === "POST" && isEndpoint(endpoint)
    if (!known || !verify(secret, body, header(request, "x-hub-signature-256"))) {
      rejected++
      response.writeHead(known ? 401 : 404).end()
      return
    }
    const id = header(request, "x-github-delivery") ?? ""
    const attempt = Number(header(request, "x-delivery-attempt"))
    const answer = replyOf(seed, endpoint, id, attempt, healed)
    const retryAfter = answer._tag === "Busy" ? retryAfterOf(answer) : undefined
    const visit = { id, endpoint, attempt, at, answer: answer._tag, notBefore: retryAfter?.notBefore, accepted: false }
    visits.push(visit)
    if (answer._tag === "Stall") return
    if (answer._tag === "HangUp") return void request.socket.destroy()
    const headers = retryAfter && { "retry-after": retryAfter.value }
    const wait = retryAfter === undefined ? latencyOf(seed, id, attempt) : 0
    setTimeout(() => {
      // The client is gone, and does not get the reply.
      if (response.destroyed) return
      visit.accepted = answer._tag === "Accept"
      if (visit.accepted) onAccepted?.(id)
      response.writeHead(answer.status, headers).end()
    }, wait)
  }

  const server = createServer((request, response) => {
    // An aborted request is not accepted, and the dispatcher handles that.
    receive(request, response).catch(() => response.destroy())
  })
  // Longer than the client keeps idle connections: none is closed during a request.
  server.keepAliveTimeout = 60_000
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo // the address of a TCP server

  return {
    urlOf: (endpoint) => new URL(`http://127.0.0.1:${port}/hooks/${encodeURIComponent(endpoint)}`),
    visits,
    rejected: () => rejected,
    heal: () => {
      healed = true
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close")
      server.close()
      server.closeAllConnections()
      await closed
    }
  }
}

const header = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === "string" ? value : undefined
}

const read = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  let size = 0
  const received: AsyncIterable<Buffer> = request
  for await (const chunk of received) {
    if ((size += chunk.length) > maxBody) throw new Error("the body is too large")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Makes the text of a Retry-After header, and its time on the monotonic clock. */
const retryAfterOf = ({ form, seconds }: Extract<Reply, { _tag: "Busy" }>) => {
  // Read before the date: a pause of the process in between makes the time earlier, never later.
  const at = performance.now()
  if (form === "seconds") return { value: String(seconds), notBefore: at + seconds * 1000 }
  const now = Date.now()
  // HTTP dates have whole seconds. Rounded up, the date is never too early.
  const date = Math.ceil((now + seconds * 1000) / 1000) * 1000
  // Date.now() is rounded down to whole milliseconds: one less keeps the time from being too late.
  return { value: new Date(date).toUTCString(), notBefore: at + (date - now) - 1 }
}
