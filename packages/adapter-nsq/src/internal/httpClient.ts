/** One HTTP request with TLS options, which `fetch` does not support. No other file imports Node's HTTP client. */
import { TlsOptions } from "@requeue/kit"
import { readFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { request as requestSecure } from "node:https"
import type { HttpInterface } from "./address.ts"

// Not imported: for an ES module that imports it, Node also loads its WebSocket client, which takes 20 ms.
const { request: requestPlain } = process.getBuiltinModule("node:http")

/** A response. */
export interface HttpResponse {
  readonly status: number
  readonly body: string
  /**
   * The server's time, in milliseconds since the epoch, without the fraction of a second; `undefined` if it sends none.
   */
  readonly date: number | undefined
}

/** The rest of a request. */
export interface RequestOptions {
  /** The request's method. It has no body. */
  readonly method: "GET" | "POST"
  /** Cancels the request. */
  readonly signal: AbortSignal
}

/** The largest response that is read, in bytes: nsqlookupd sends about 7 MB for 200 nsqd with 1,000 topics each. */
const largest = 8 * 1024 * 1024

/** Reads the body. If it is too large, closes the socket without reading the rest. */
const read = async (response: IncomingMessage): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  // Cast, because Node's types do not express that the chunks are bytes without an encoding.
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > largest) throw new Error("the answer has more than 8 MiB")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Sends a request on a new connection: a restarted nsqd would have closed a kept one. */
export const ask = ({ tls, url }: HttpInterface, path: string, options: RequestOptions): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const at = new URL(`${url}/${path}`)
    const all = { ...options, agent: false, headers: { accept: "application/vnd.nsq; version=1.0" } }
    const isSecure = at.protocol === "https:"
    const sent = isSecure
      ? requestSecure(at, { ...all, ...TlsOptions.toNode(tls, readFileSync) })
      : requestPlain(at, all)
    sent.on("error", reject)
    sent.on("response", (response) => {
      const date = Date.parse(response.headers.date ?? "")
      read(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, body, date: Number.isNaN(date) ? undefined : date }),
        reject
      )
    })
    sent.end()
  })
