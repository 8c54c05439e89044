/** The conformance suite, and what only AWS can tell, on AWS itself: `npm run test:aws`. Never part of `npm test`. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { connect } from "../real/connect.ts"
import { layer, removeAll } from "../real/harness.ts"
import * as OnAws from "./onAws.ts"

const variable = "REQUEUE_AWS_URL"

const help = `${variable}=sqs://<region> names the region of AWS that the suite runs in, with the credentials that the SDK
finds (environment, profile, container), or sqs://<access key>:<secret>@<region>.

It makes about 320 queues, all of a name that starts with requeue-, and removes them at the end. It makes about 6,000
API calls, 12,000 at most; at 0.40 US dollars a million that is less than one cent, and within the free tier. The
identity needs every action of SQS on queues of that name, sqs:ListQueues and sqs:CreateQueue among them.`

const url = process.env[variable]
if (url === undefined || url === "") throw new Error(`test:aws needs to know where.\n${help}`)

const sqs = connect(url)
await sqs.listQueues({ MaxResults: 1 }).catch((cause: Error) => {
  throw new Error(`test:aws got no answer that it could use: ${cause.message}\n${help}`)
})
afterAll(async () => {
  await removeAll(sqs, OnAws.prefix)
  sqs.destroy()
})
console.log(help)

describe("what only AWS can tell", () => {
  test.each(OnAws.cases)("%s", { timeout: 300_000 }, (_, run) => run({ url, sqs }))
})

Suite.register(
  { describe: describe.concurrent, test: test.concurrent, afterAll },
  {
    name: "sqs aws",
    timeout: 180_000,
    // Numbers of queues are right within seconds when nothing happens; AWS promises a minute.
    layer: layer({ name: "aws", url, proxied: url, lateness: 1000, settleTime: 5000, createTime: 1000 })
  }
)
