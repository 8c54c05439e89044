import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import type { Received } from "@requeue/core/promise"
import { expect, test } from "vitest"
import { makeHandler } from "../src/handler.ts"
import { verify } from "../src/signature.ts"

const secret = "a secret of this test"

const message: Received<unknown> = {
  id: "0d4e",
  body: { zen: "Half measures are as bad as nothing at all.", name: "Zoë" },
  headers: { "x-github-event": "ping", "x-webhook-endpoint": "ci" },
  timestamp: 0,
  attempts: 3,
  native: {},
  ack: () => {},
  retry: () => {},
  fail: () => {},
  within: async () => {}
}

/** Handles one message against a real server. */
const deliver = async (respond: RequestListener, signal = new AbortController().signal): Promise<void> => {
  const server = createServer(respond).listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  try {
    await makeHandler({ secret, urlOf: (endpoint) => new URL(`http://127.0.0.1:${port}/${endpoint}`) })(message, {
      signal
    })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const answer =
  (status: number, headers: Record<string, string> = {}): RequestListener =>
  (_, response) =>
    response.writeHead(status, headers).end(status === 204 ? undefined : "text")

const failureOf = (delivery: Promise<void>): Promise<Error> =>
  delivery.then(
    () => expect.unreachable("the handler must fail"),
    (error: Error) => error
  )

test.each([200, 201, 202, 204])("%i is done", async (status) => {
  await expect(deliver(answer(status))).resolves.toBeUndefined()
})

test("410 is permanent", async () => {
  const error = await failureOf(deliver(answer(410)))
  expect(error).toMatchObject({
    name: "PermanentError",
    permanent: true,
    message: expect.stringContaining("ci answered 410")
  })
})

test.each([
  [429, "7"],
  [503, "7"],
  [429, "Wed, 21 Oct 2037 07:28:00 GMT"],
  [503, "Wed, 21 Oct 2037 07:28:00 GMT"]
])("%i with Retry-After: %s is for later", async (status, retryAfter) => {
  const error = await failureOf(deliver(answer(status, { "retry-after": retryAfter })))
  expect(error).toMatchObject({ name: "RetryLaterError", retryAfter, message: `ci answered ${status}` })
})

test.each([
  ["429 without Retry-After", answer(429)],
  ["503 without Retry-After", answer(503)],
  ["500 with Retry-After", answer(500, { "retry-after": "7" })],
  ["500", answer(500)],
  ["502", answer(502)],
  ["400", answer(400)],
  ["401", answer(401)],
  ["a redirect, which is not followed", answer(302, { location: "http://127.0.0.1:9/" })]
])("%s is a plain failure", async (_, respond) => {
  const error = await failureOf(deliver(respond))
  expect(error).toMatchObject({ name: "Error", message: expect.stringMatching(/^ci answered \d{3}$/) })
})

test("a connection that is refused is a plain failure with its cause", async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  const handler = makeHandler({ secret, urlOf: () => new URL(`http://127.0.0.1:${port}/`) })
  const error = await failureOf(handler(message, { signal: new AbortController().signal }))
  expect(error).toMatchObject({
    name: "Error",
    message: "ci cannot be reached",
    cause: { cause: { code: "ECONNREFUSED" } }
  })
})

test("a server that hangs up is a plain failure", async () => {
  const error = await failureOf(deliver((request) => request.socket.destroy()))
  expect(error).toMatchObject({ name: "Error", message: "ci cannot be reached" })
})

test("the signal ends a request that nobody answers", async () => {
  const timeUp = new AbortController()
  const error = await failureOf(deliver(() => timeUp.abort(), timeUp.signal))
  expect(error).toMatchObject({ name: "Error", cause: { name: "AbortError" } })
})

test("the request is a POST of the body with its signature, id, event and attempt", async () => {
  const requests: Array<object> = []
  const chunks: Array<Buffer> = []
  let signature: unknown
  await deliver((request, response) => {
    requests.push({ method: request.method, url: request.url, headers: request.headers })
    signature = request.headers["x-hub-signature-256"]
    request.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => response.end())
  })
  const body = Buffer.concat(chunks)
  expect(JSON.parse(body.toString())).toEqual(message.body)
  expect(requests).toMatchObject([
    {
      method: "POST",
      url: "/ci",
      headers: {
        "content-type": "application/json",
        "x-github-event": "ping",
        "x-github-delivery": "0d4e",
        "x-delivery-attempt": "3"
      }
    }
  ])
  expect(verify(secret, body, String(signature))).toBe(true)
  expect(verify("another secret", body, String(signature))).toBe(false)
  expect(verify(secret, Buffer.concat([body, Buffer.from(" ")]), String(signature))).toBe(false)
})

test("the signature is GitHub's: the example of its documentation", () => {
  const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
  expect(verify("It's a Secret to Everybody", Buffer.from("Hello, World!"), signature)).toBe(true)
})
