import { SqsOptions } from "@requeue/adapter-sqs"
import { connect, Driver } from "@requeue/adapter-sqs/driver"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Contract from "../contract/Contract.ts"
import * as Api from "../../src/servers/sqs/Api.ts"
import * as SqsDriver from "../../src/servers/sqs/Driver.ts"
import { clockRows, quota, rows, type Sqs } from "./contract.ts"
import { open } from "./harness.ts"

const simulated = (inFlight: number) =>
  Effect.gen(function* () {
    const { host, network, server } = yield* open({ inFlight })
    const settings = Result.getOrThrow(SqsOptions.decode({ url: "sqs://eu-west-1" }))
    const driver = SqsDriver.make(host, network, "contract")
    const sqs: Sqs = {
      client: yield* Effect.provideService(connect(settings), Driver, driver),
      wait: (seconds) => Effect.sleep(seconds * 1000),
      deleteQueue: (QueueUrl) => Effect.sync(() => server.handle(Api.call("DeleteQueue", { QueueUrl }), () => {}))
    }
    return sqs
  })

Contract.register(rows, { name: "the simulated SQS", open: simulated(120_000), isVirtual: true })
Contract.register(clockRows, { name: "the simulated SQS's clock", open: simulated(quota), isVirtual: true })
