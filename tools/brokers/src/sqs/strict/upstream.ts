/** The server behind the proxy. */
import type { IncomingHttpHeaders } from "node:http"

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly [name: string]: unknown }
}

export type Ask = (action: string, body: object) => Promise<Answer>

// Of these the server finds out which service and region is meant.
const passed = ["authorization", "content-type", "x-amz-date"]

/** Calls the server in the name of the client whose headers these are. */
export const call = async (
  endpoint: string,
  headers: IncomingHttpHeaders,
  action: string,
  body: object
): Promise<Answer> => {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: {
      ...Object.fromEntries(passed.map((name) => [name, String(headers[name] ?? "")])),
      "x-amz-target": `AmazonSQS.${action}`
    },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  const error = response.headers.get("x-amzn-query-error")
  return {
    status: response.status,
    headers: {
      "content-type": response.headers.get("content-type") ?? "application/x-amz-json-1.0",
      ...(error === null ? {} : { "x-amzn-query-error": error })
    },
    body: text === "" ? {} : (JSON.parse(text) as Answer["body"])
  }
}
