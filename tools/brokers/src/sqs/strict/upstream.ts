/** The server behind the proxy. */
import type { IncomingHttpHeaders } from "node:http"

/** The reply to a call. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly [name: string]: unknown }
}

/** Calls the server behind. */
export type Ask = (action: string, body: object) => Promise<Reply>

// The server finds the service and the region in these headers.
const passed = ["authorization", "content-type", "x-amz-date"]

/** Calls the server with the headers of the client. */
export const call = async (
  endpoint: string,
  headers: IncomingHttpHeaders,
  action: string,
  body: object
): Promise<Reply> => {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: {
      ...Object.fromEntries(passed.map((name) => [name, String(headers[name] ?? "")])),
      "x-amz-target": `AmazonSQS.${action}`
    },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  const parsed: Reply["body"] = text === "" ? {} : JSON.parse(text)
  const error = response.headers.get("x-amzn-query-error")
  return {
    status: response.status,
    headers: {
      "content-type": response.headers.get("content-type") ?? "application/x-amz-json-1.0",
      ...(error === null ? {} : { "x-amzn-query-error": error })
    },
    body: parsed
  }
}
