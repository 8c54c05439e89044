/** One HTTP request, with the TLS options of its interface: `fetch` takes none. No other file imports Node's own client. */
import { TlsOptions } from "@requeue/kit"
import { readFileSync } from "node:fs"
import { type IncomingMessage, request as requestPlain } from "node:http"
import { request as requestSecure } from "node:https"
import type { HttpInterface } from "./address.ts"

export interface HttpResponse {
  readonly status: number
  readonly body: string
  /** The server's time, in milliseconds since the epoch, without the fraction of a second; `undefined` where it has none. */
  readonly date: number | undefined
}

export interface RequestOptions {
  readonly method: "GET" | "POST"
  readonly signal: AbortSignal
}

/** The most bytes that are read of an answer: that of 200 nsqd with 1,000 topics each has some 7 MB. */
const largest = 8 * 1024 * 1024

/** Reads the body. The socket of one that is too large is closed with the rest unread. */
const read = async (response: IncomingMessage): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  // Cast, because Node's types do not tell: without an encoding, the chunks are bytes.
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > largest) throw new Error("the answer has more than 8 MiB")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Each request has a connection of its own: one that is kept may have been closed by an nsqd that has restarted. */
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
