/**
 * The other end: an HTTP server on this machine that plays all subscribers, checks the signature of every request, and
 * writes down what came and when. It knows nothing of queues, so what it saw is the outside view of the dispatcher.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { type Answer, answerOf, type EndpointName, isEndpoint, latencyOf } from "./endpoints.ts"
import { verify } from "./signature.ts"

/** One request that came. Times are milliseconds of `performance.now()`. */
export interface Visit {
  readonly id: string
  readonly endpoint: EndpointName
  readonly attempt: number
  readonly at: number
  readonly answer: Answer["_tag"]
  /** When it may come again at the earliest, if the answer had a Retry-After. */
  readonly notBefore: number | undefined
  /** Whether a 2xx was sent. */
  accepted: boolean
}

export interface Receiver {
  readonly urlOf: (endpoint: string) => URL
  /** Every signed request to an endpoint, in the order of arrival. */
  readonly visits: ReadonlyArray<Visit>
  /** Requests that were turned away: no or a wrong signature, or no such endpoint. */
  readonly rejected: () => number
  /** From now on every endpoint answers 2xx. */
  readonly heal: () => void
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export interface ReceiverOptions {
  readonly seed: number
  readonly secret: string
}

/** Larger than any of GitHub's payloads, which end at 25 MB, has no business here. */
const maxBody = 25 * 1024 * 1024

export const startReceiver = async ({ secret, seed }: ReceiverOptions): Promise<Receiver> => {
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
    const answer = answerOf(seed, endpoint, id, attempt, healed)
    const retryAfter = answer._tag === "Busy" ? retryAfterOf(answer) : undefined
    const visit = { id, endpoint, attempt, at, answer: answer._tag, notBefore: retryAfter?.notBefore, accepted: false }
    visits.push(visit)
    if (answer._tag === "Stall") return
    if (answer._tag === "HangUp") return void request.socket.destroy()
    const headers = retryAfter && { "retry-after": retryAfter.value }
    const wait = retryAfter === undefined ? latencyOf(seed, id, attempt) : 0
    setTimeout(() => {
      // Who is not listening any more has not been told.
      if (response.destroyed) return
      visit.accepted = answer._tag === "Accept"
      response.writeHead(answer.status, headers).end()
    }, wait)
  }

  const server = createServer((request, response) => {
    // A request that breaks off is the dispatcher's business; here it only never counts as accepted.
    receive(request, response).catch(() => response.destroy())
  })
  // Longer than the client keeps an idle connection, so that none is closed under a request.
  server.keepAliveTimeout = 60_000
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo

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
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((size += chunk.length) > maxBody) throw new Error("the body is too large")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The header's text, and the moment it names on the monotonic clock. */
const retryAfterOf = ({ form, seconds }: Extract<Answer, { _tag: "Busy" }>) => {
  // Before the date: what keeps the process from running in between makes it ask for less, never for more.
  const at = performance.now()
  if (form === "seconds") return { value: String(seconds), notBefore: at + seconds * 1000 }
  const now = Date.now()
  // HTTP dates have whole seconds: the next one, so that it is never sooner than asked.
  const date = Math.ceil((now + seconds * 1000) / 1000) * 1000
  // Date.now() is cut to whole milliseconds; one off keeps the moment from being named too late.
  return { value: new Date(date).toUTCString(), notBefore: at + (date - now) - 1 }
}
