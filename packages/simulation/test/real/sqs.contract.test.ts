/** The contract of SQS on a real server: fauxqs, behind the proxy that adds AWS's rules. */
import { SqsOptions } from "@requeue/adapter-sqs"
import { connect } from "@requeue/adapter-sqs/driver"
import { start, strictSqs } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Scope from "effect/Scope"
import { afterAll } from "vitest"
import * as Contract from "../contract/Contract.ts"
import { clockRows, fauxqs, quota, rows, type Sqs } from "../sqs/contract.ts"

/** A server and the proxy. */
const server = (inFlight: number) =>
  Effect.gen(function* () {
    const broker = yield* Effect.acquireRelease(
      Effect.promise(() => start("sqs", { version: "fauxqs" })),
      (opened) => Effect.promise(() => opened.dispose())
    )
    const strict = yield* Effect.acquireRelease(
      Effect.promise(() => strictSqs(broker, { inFlight })),
      ({ close }) => Effect.promise(close)
    )
    return { broker, strict }
  })

const sqsOf = ({
  broker,
  strict
}: Effect.Success<ReturnType<typeof server>>): Effect.Effect<Sqs, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* connect(Result.getOrThrow(SqsOptions.decode({ url: strict.url })))
    return {
      client,
      wait: (seconds) => Effect.promise(() => strict.forward(seconds * 1000)),
      deleteQueue: (QueueUrl) =>
        Effect.promise(async () => {
          const headers = { "content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.DeleteQueue" }
          await fetch(`http://${new URL(broker.url).host}`, {
            method: "POST",
            headers,
            body: JSON.stringify({ QueueUrl })
          })
        })
    }
  })

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** One server for many rows. */
const shared = (inFlight: number) => Effect.runSync(Effect.cached(Scope.provide(server(inFlight), scope)))

/** Rows that move the clock have their server one after the other. */
const turns = Semaphore.makeUnsafe(1)
const inTurn = Effect.acquireRelease(turns.take(1), () => turns.release(1))

Contract.register(rows, { name: fauxqs, open: Effect.flatMap(shared(120_000), sqsOf), isVirtual: false })
Contract.register(clockRows, {
  name: fauxqs,
  open: Effect.andThen(inTurn, Effect.flatMap(shared(quota), sqsOf)),
  isVirtual: false
})
