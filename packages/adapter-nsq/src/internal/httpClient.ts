/** One HTTP request, with the TLS options of its interface: `fetch` takes none. No other file imports Node's own client. */
import { TlsOptions } from "@requeue/core/adapter-kit"
import { request as requestPlain } from "node:http"
import { request as requestSecure } from "node:https"
import { text } from "node:stream/consumers"
import type { HttpInterface } from "./address.ts"

export interface HttpResponse {
  readonly status: number
  readonly body: string
}

export interface RequestOptions {
  readonly method: "GET" | "POST"
  readonly signal: AbortSignal
}

/** Each request has a connection of its own: one that is kept may have been closed by an nsqd that has restarted. */
export const ask = ({ tls, url }: HttpInterface, path: string, options: RequestOptions): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const at = new URL(`${url}/${path}`)
    const all = { ...options, agent: false, headers: { accept: "application/vnd.nsq; version=1.0" } }
    const isSecure = at.protocol === "https:"
    const sent = isSecure ? requestSecure(at, { ...all, ...TlsOptions.toNode(tls) }) : requestPlain(at, all)
    sent.on("error", reject)
    sent.on("response", (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject)
    })
    sent.end()
  })
