/** S3 beside the queues of a server, and a proxy in front of it that answers in its place when a test says so. */
import { S3 } from "@aws-sdk/client-s3"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll } from "vitest"

/** An answer of S3 that is an error: the status and the code. `undefined` breaks the connection. */
type Refusal = readonly [status: number, code: string] | undefined

export interface Bucket {
  readonly name: string
  /** Through the proxy. */
  readonly client: S3
  /** The tests' own, straight to the server. */
  readonly behind: S3
  /** Answers the next calls of a method so, in this order. */
  readonly refuse: (method: "GET" | "PUT", ...refusals: ReadonlyArray<Refusal>) => void
  /** The keys of all objects. */
  readonly keys: () => Promise<ReadonlyArray<string>>
}

const connect = (endpoint: string): S3 =>
  new S3({
    region: "eu-west-1",
    endpoint,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: "test", secretAccessKey: "test" }
  })

/** A new bucket of the server at this address; clients and proxy end with the test file. */
export const bucketAt = async (endpoint: string, name: string): Promise<Bucket> => {
  const planned = { GET: [] as Array<Refusal>, PUT: [] as Array<Refusal> }
  const proxy = createServer((incoming, outgoing) => {
    const plan = incoming.method === "GET" || incoming.method === "PUT" ? planned[incoming.method] : []
    if (plan.length > 0) {
      const refusal = plan.shift()
      incoming.resume()
      if (refusal === undefined) return void incoming.socket.destroy()
      outgoing.writeHead(refusal[0], { "content-type": "application/xml" })
      return void outgoing.end(`<Error><Code>${refusal[1]}</Code><Message>as planned</Message></Error>`)
    }
    const { headers, method, url } = incoming
    const on = request(new URL(url!, endpoint), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    incoming.pipe(on)
  })
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  const { port } = proxy.address() as AddressInfo // It listens on TCP.
  const [client, behind] = [connect(`http://127.0.0.1:${port}`), connect(endpoint)]
  await behind.createBucket({ Bucket: name })
  afterAll(() => {
    client.destroy()
    behind.destroy()
    proxy.closeAllConnections()
    proxy.close()
  })
  return {
    name,
    client,
    behind,
    refuse: (method, ...refusals) => void planned[method].push(...refusals),
    keys: async () => (await behind.listObjectsV2({ Bucket: name })).Contents?.map(({ Key }) => Key!) ?? []
  }
}
