// The same handler as an AWS Lambda function of an SQS event source. Deploy it as it is, with ReportBatchItemFailures.
import { SqsLambda } from "@requeue/adapter-sqs/lambda"
import { exponential } from "@requeue/core/promise"
export const handler = SqsLambda.handler(
  "examples-orders",
  { retry: { maxRetries: 5, backoff: exponential("10 seconds", { max: "1 hour" }) }, concurrency: 10 },
  async ({ attempts, body }) => {
    console.log(`attempt ${attempts}: ${body.total}`)
  }
)
// prints:
// attempt 1: 9.5
