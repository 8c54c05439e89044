import { expect, test } from "vitest"
import { replyOf, type EndpointName, names } from "../src/endpoints.ts"
import { startReceiver, type Receiver } from "../src/receiver.ts"
import { sign } from "../src/signature.ts"

const secret = "a secret of this test"

interface Request {
  readonly endpoint: string
  readonly id?: string
  readonly attempt?: number
  readonly signature?: string
}

const post = (
  receiver: Receiver,
  { attempt = 1, endpoint, id = "1", signature = sign(secret, "{}") }: Request,
  signal: AbortSignal | null = null
) =>
  fetch(receiver.urlOf(endpoint), {
    method: "POST",
    body: "{}",
    headers: {
      "x-github-delivery": id,
      "x-delivery-attempt": String(attempt),
      ...(signature !== "" && { "x-hub-signature-256": signature })
    },
    signal
  })

/** The first id for which the endpoint gives such an answer. */
const idFor = (seed: number, endpoint: EndpointName, kind: string): string => {
  for (let i = 0; ; i++) if (replyOf(seed, endpoint, String(i), 1, false)._tag === kind) return String(i)
}

test("two receivers with the same seed answer alike, and write down what came", async () => {
  const requests = names
    .filter((name) => name !== "reports")
    .flatMap((endpoint) => [1, 2].flatMap((attempt) => ["1", "2", "3", "4"].map((id) => ({ attempt, endpoint, id }))))
  const seen = async () => {
    await using receiver = await startReceiver({ seed: 7, secret })
    const statuses = await Promise.all(
      requests.map((request) =>
        post(receiver, request).then(
          ({ status }) => status,
          () => "broken"
        )
      )
    )
    // All at once, so in any order.
    const visits = receiver.visits
      .map(({ accepted, answer, attempt, endpoint, id }) => [endpoint, attempt, id, answer, accepted].join(" "))
      .toSorted()
    return { statuses, visits }
  }
  const [once, again] = [await seen(), await seen()]
  expect(again).toEqual(once)
  expect(once.visits.length).toBe(requests.length)
  expect(new Set(once.statuses)).toEqual(new Set([200, 202, 204, 410, 429, 500, 502, 503, "broken"]))
})

test("a request with no signature, or a wrong one, or for nobody, is turned away and not written down", async () => {
  await using receiver = await startReceiver({ seed: 1, secret })
  const wrong = sign("another secret", "{}")
  expect((await post(receiver, { endpoint: "ci", signature: wrong })).status).toBe(401)
  expect((await post(receiver, { endpoint: "ci", signature: "" })).status).toBe(401)
  expect((await post(receiver, { endpoint: "nobody" })).status).toBe(404)
  expect((await fetch(receiver.urlOf("ci"))).status).toBe(404)
  expect(receiver.rejected()).toBe(4)
  expect(receiver.visits).toEqual([])
})

test("Retry-After comes in seconds and as an HTTP date, and the receiver knows when it may come again", async () => {
  await using receiver = await startReceiver({ seed: 1, secret })
  const seconds = await post(receiver, { endpoint: "search", id: idFor(1, "search", "Busy") })
  expect(seconds.status).toBe(429)
  expect(seconds.headers.get("retry-after")).toBe("1")
  const asked = { wall: Date.now(), monotonic: performance.now() }
  const date = await post(receiver, { endpoint: "crm", id: idFor(1, "crm", "Busy") })
  expect(date.status).toBe(503)
  const answered = { wall: Date.now(), monotonic: performance.now() }
  const until = Date.parse(date.headers.get("retry-after")!)
  // In one second or two, and then at the next whole one.
  expect(until).toBeGreaterThanOrEqual(asked.wall + 1000)
  expect(until).toBeLessThanOrEqual(answered.wall + 3000)
  const [first, second] = receiver.visits
  expect(first!.notBefore! - first!.at).toBeGreaterThanOrEqual(1000)
  // The two clocks were read somewhere between the request and the answer, and not quite at once.
  expect(second!.notBefore!).toBeGreaterThan(until - answered.wall + asked.monotonic - 2)
  expect(second!.notBefore!).toBeLessThan(until - asked.wall + answered.monotonic)
})

test("a stalled request is never answered, and one that breaks off is not accepted", async () => {
  await using receiver = await startReceiver({ seed: 1, secret })
  const request = { endpoint: "reports", id: idFor(1, "reports", "Stall") }
  const client = new AbortController()
  let isAnswered = false
  const stalled = post(receiver, request, client.signal).finally(() => (isAnswered = true))
  await expect.poll(() => receiver.visits).toMatchObject([{ answer: "Stall" }])
  // Longer than any answer takes that comes: one after the other, ten of them.
  for (let i = 0; i < 10; i++) expect(await post(receiver, { endpoint: "ci" })).toMatchObject({ ok: true })
  expect(isAnswered).toBe(false)
  client.abort()
  await expect(stalled).rejects.toThrow("abort")
  expect(receiver.visits[0]).toMatchObject({ answer: "Stall", accepted: false })
})

test("once healed, every subscriber answers 2xx", async () => {
  await using receiver = await startReceiver({ seed: 1, secret })
  receiver.heal()
  for (const endpoint of names) expect(await post(receiver, { endpoint })).toMatchObject({ ok: true })
  expect(receiver.visits.every(({ accepted }) => accepted)).toBe(true)
})
