/** Calls of the driver that reach no server: what their errors say, and what they do not. */
import { SQSClient } from "@aws-sdk/client-sqs"
import { assert, describe, it } from "@effect/vitest"
import { Outgoing } from "@requeue/core"
import * as Effect from "effect/Effect"
import { inspect } from "node:util"
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
      const message = Outgoing.make({ queue: "orders", body: new Uint8Array(), id: "m1", now: 0 })
      return yield* Effect.flip(broker.publish([message]))
    })
  )

describe("the text of what a function of the program throws is not shown", () => {
  it.live.each<[name: string, options: () => Omit<SqsOptions.Options, "url">]>([
    ["credentials", () => ({ requestHandler, credentials: async () => vault() })],
    ["credentials, at once", () => ({ requestHandler, credentials: vault })],
    ["endpoint", () => ({ requestHandler, credentials: async () => identity, endpoint: async () => vault() })],
    ["credentials of its client", () => ({ client: new SQSClient({ region: "eu-west-1", requestHandler, credentials: async () => vault() }) })]
  ])("%s", ([, options]) =>
    Effect.gen(function* () {
      const error = yield* errorOf(options())
      assert.match(error.message, /ConnectionFailed: .*has failed with VaultError; its text may hold a secret, and is not shown\. Nothing was sent/)
      assert.notInclude(inspect(error, { depth: 9, showHidden: true }), "hunter2")
    })
  )

  it.live("and credentials with the line break of a file are no credentials", () =>
    Effect.gen(function* () {
      const error = yield* errorOf({ requestHandler, credentials: async () => ({ ...identity, secretAccessKey: "hunter2\n" }) })
      assert.match(error.message, /AccessRefused: .*credentials answered a secretAccessKey with a line break/)
      assert.notInclude(inspect(error, { depth: 9, showHidden: true }), "hunter2")
    })
  )
})
