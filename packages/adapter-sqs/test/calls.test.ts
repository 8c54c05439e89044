/** Calls of the driver that reach no server: what their errors say, and what they do not. */
import { SQSClient } from "@aws-sdk/client-sqs"
import { assert, describe, it } from "@effect/vitest"
import { outgoing } from "@requeue/conformance/Workload"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { inspect } from "node:util"
import { Readable } from "node:stream"
import { SqsBroker, type SqsOptions } from "../src/index.ts"

const url = "sqs://eu-west-1"
const identity = { accessKeyId: "k", secretAccessKey: "s" }

class VaultError extends Error {}

const vault = (): never => {
  throw new VaultError("the token hunter2 has ended")
}

/** A handler that never gets a request, so nothing leaves this machine. */
const requestHandler = { handle: () => Promise.reject(new Error("a request was sent")) }

/** The error of a send. */
const errorOf = (options: Omit<SqsOptions.Options, "url">) =>
  Effect.scoped(
    Effect.gen(function* () {
      const broker = yield* SqsBroker.make({ url, ...options })
      const message = outgoing("orders", "m1", { now: 0 })
      return yield* Effect.flip(broker.publish([message]))
    })
  )

describe("the text of what a function of the program throws is not shown", () => {
  it.live.each<[name: string, options: () => Omit<SqsOptions.Options, "url">]>([
    ["credentials", () => ({ requestHandler, credentials: async () => vault() })],
    ["credentials, at once", () => ({ requestHandler, credentials: vault })],
    ["endpoint", () => ({ requestHandler, credentials: async () => identity, endpoint: async () => vault() })],
    [
      "credentials of its client",
      () => ({ client: new SQSClient({ region: "eu-west-1", requestHandler, credentials: async () => vault() }) })
    ]
  ])("%s", ([, options]) =>
    Effect.gen(function* () {
      const error = yield* errorOf(options())
      assert.match(
        error.message,
        /ConnectionFailed: .*has failed with VaultError; its text may hold a secret, and is not shown\. Nothing was sent/
      )
      assert.notInclude(inspect(error, { depth: 9, showHidden: true }), "hunter2")
    })
  )

  it.live("and credentials with the line break of a file are no credentials", () =>
    Effect.gen(function* () {
      const error = yield* errorOf({
        requestHandler,
        credentials: async () => ({ ...identity, secretAccessKey: "hunter2\n" })
      })
      assert.match(error.message, /AccessRefused: .*credentials answered a secretAccessKey with a line break/)
      assert.notInclude(inspect(error, { depth: 9, showHidden: true }), "hunter2")
    })
  )
})

describe("reach, by which waitForBroker asks SQS", () => {
  /** A handler whose every answer has this status and body. */
  const answering = (statusCode: number, body: string, headers: Record<string, string> = {}) => ({
    handle: async () => ({
      response: {
        statusCode,
        headers: { "content-type": "application/x-amz-json-1.0", ...headers },
        body: Readable.from([body])
      }
    })
  })
  const named = (code: string, status = 400) =>
    answering(status, JSON.stringify({ __type: `com.amazonaws.sqs#${code}`, message: "said" }))
  const failing = (code: string, message = `connect ${code}`) => ({
    handle: () => Promise.reject(Object.assign(new Error(message), { code }))
  })
  const reached = (options: Omit<SqsOptions.Options, "url">) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { connection, reach } = yield* SqsBroker.make({ url, credentials: async () => identity, ...options })
        const result = yield* Effect.result(reach!)
        return [Result.isFailure(result) ? result.failure.reason : "reached", connection().state] as const
      })
    )

  it.live.each<
    [name: string, handler: { readonly handle: () => Promise<unknown> }, expected: readonly [string, string]]
  >([
    ["the queue is there", answering(200, '{"QueueUrl":"https://h/1/q"}'), ["reached", "up"]],
    ["the queue is missing", named("QueueDoesNotExist"), ["reached", "up"]],
    ["a permission is missing", named("AccessDeniedException", 403), ["reached", "up"]],
    ["SQS throttles", named("RequestThrottled", 403), ["reached", "up"]],
    ["SQS is not available", named("ServiceUnavailable", 503), ["ConnectionFailed", "up"]],
    ["nobody listens", failing("ECONNREFUSED"), ["ConnectionFailed", "down"]],
    ["a proxy answers 404", answering(404, "<html>", { "content-type": "text/html" }), ["ConnectionFailed", "up"]],
    ["a proxy answers 403", answering(403, "", { "content-type": "text/plain" }), ["ConnectionFailed", "up"]],
    ["another server answers", answering(200, "{}"), ["ConnectionLost", "up"]],
    ["SQS refuses the credentials", named("InvalidClientTokenId", 403), ["AccessRefused", "up"]]
  ])("%s", ([, requestHandler, expected]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* reached({ requestHandler: requestHandler as never }), expected)
    })
  )

  it.live("connect waits for the first answer, and asks nothing where it is not to wait", () =>
    Effect.promise(async () => {
      const missing = named("QueueDoesNotExist")
      let calls = 0
      const late = { handle: () => (++calls <= 4 ? failing("ECONNREFUSED") : missing).handle() }
      const layer = SqsBroker.layer({ url, credentials: async () => identity, requestHandler: late as never })
      await using lazy = await connect(layer, { waitForBroker: 0 })
      assert.deepStrictEqual([calls, (await lazy.health()).connection.state], [0, "up"])
      await using requeue = await connect(layer)
      assert.deepStrictEqual([calls, (await requeue.health()).connection.state], [5, "up"])
      const never = { url, credentials: async () => identity, requestHandler: failing("ECONNREFUSED") as never }
      const refused = await connect(SqsBroker.layer(never), { waitForBroker: "1 second" }).catch(String)
      assert.match(String(refused), /sqs: connect: ConnectionFailed: ECONNREFUSED.*attempts? in/)
    })
  )

  it.live.each([
    ["an untrusted certificate", failing("DEPTH_ZERO_SELF_SIGNED_CERT")],
    ["an answer that is not HTTP", failing("HPE_INVALID_CONSTANT", "Parse Error: Expected HTTP/, RTSP/ or ICE/")],
    ["refused credentials", named("SignatureDoesNotMatch", 403)]
  ])("connect does not wait after %s", ([, requestHandler]) =>
    Effect.promise(async () => {
      const layer = SqsBroker.layer({ url, credentials: async () => identity, requestHandler: requestHandler as never })
      assert.notMatch(String(await connect(layer).catch(String)), /attempts? in/)
    })
  )

  it.live("credentials cannot be had", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* reached({ requestHandler, credentials: vault }), ["ConnectionFailed", "down"])
    })
  )
})
