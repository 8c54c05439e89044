/** The server that a test file runs on: fauxqs, or what the environment or the test names. */
import { SQS } from "@aws-sdk/client-sqs"
import { start, type Broker } from "@requeue/brokers"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { afterAll, beforeAll } from "vitest"
import * as SqsOptions from "../src/SqsOptions.ts"

export interface Server {
  readonly url: () => string
  readonly settings: (options?: Partial<SqsOptions.Options>) => SqsOptions.Settings
  /** Of the tests' own, beside the adapter's. */
  readonly client: () => SQS
}

/** A server for the whole file. */
export const server = (version?: string): Server => {
  let broker: Broker | undefined
  let client: SQS | undefined
  const url = () => broker!.url
  const settings: Server["settings"] = (options = {}) =>
    Result.getOrThrow(SqsOptions.decode({ url: url(), ...options }))
  beforeAll(async () => {
    broker = await start("sqs", version === undefined ? {} : { version })
    client = sqs(settings())
  }, 120_000)
  afterAll(async () => {
    client?.destroy()
    await broker?.dispose()
  })
  return { url, settings, client: () => client! }
}

const sqs = ({ address: { credentials, endpoint, region } }: SqsOptions.Settings): SQS =>
  new SQS({
    region,
    useQueueUrlAsEndpoint: false,
    ...(endpoint && { endpoint }),
    ...(credentials && {
      credentials: {
        accessKeyId: credentials.accessKeyId,
        secretAccessKey: Redacted.value(credentials.secretAccessKey)
      }
    })
  })

let counter = 0

/** A name that no other test has. */
export const uniqueName = (base: string): string => `${base}-${process.pid}-${++counter}`
