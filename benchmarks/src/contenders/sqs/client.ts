/** The SDK's client for an address of the venue. */
import { SQSClient } from "@aws-sdk/client-sqs"

export const connect = (url: string): SQSClient => {
  const { host, password, searchParams, username } = new URL(url)
  return new SQSClient({
    endpoint: `http://${host}`,
    region: searchParams.get("region")!,
    credentials: { accessKeyId: username, secretAccessKey: password },
    useQueueUrlAsEndpoint: false
  })
}
