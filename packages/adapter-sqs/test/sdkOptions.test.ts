/** Clients, credentials and endpoints that the program brings itself, and that are wrong. */
import { S3 } from "@aws-sdk/client-s3"
import { SQSClient } from "@aws-sdk/client-sqs"
import { ConfigurationError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { inspect } from "node:util"
import { assert, describe, test } from "vitest"
import { SqsBroker, SqsOptions } from "../src/index.ts"

const aws = "sqs://eu-west-1"
const server = "sqs://127.0.0.1:9324?region=eu-west-1"
const [accessKeyId, secretAccessKey] = ["key", "secret"]

const fail = (options: SqsOptions.Options): Promise<ConfigurationError.ConfigurationError> =>
  Effect.runPromise(
    Effect.scoped(Effect.flip(SqsBroker.make(options)))
  ) as Promise<ConfigurationError.ConfigurationError> // the only error of options

describe("options of the SDK that are wrong", () => {
  const client = new SQSClient({ region: "eu-west-1" })
  const provider = async () => ({ accessKeyId, secretAccessKey })
  test.for<[string, object, RegExp]>([
    ["a client that is none", { client: {} }, /client.*must be an SQSClient of @aws-sdk\/client-sqs/],
    ["credentials that are no function", { credentials: 5 }, /credentials.*must be a function.*got 5/],
    ["credentials as text", { credentials: "hunter2" }, /credentials.*got a value of type string/],
    ["a request handler that is none", { requestHandler: true }, /requestHandler.*got true/],
    ["an endpoint without a scheme", { endpoint: "hunter2:9324" }, /endpoint.*must be an http: or https: URL/],
    ["a token that is no text", { accessKeyId, secretAccessKey: "s", sessionToken: 5 }, /sessionToken.*must be text/],
    [
      "a secret that hides no text",
      { accessKeyId, secretAccessKey: Redacted.make(5) },
      /secretAccessKey.*must be text/
    ],
    ["an empty token", { accessKeyId, secretAccessKey: "s", sessionToken: "" }, /sessionToken.*empty/],
    ["a key without its secret", { accessKeyId }, /secretAccessKey.*accessKeyId is given without it/],
    ["a secret without its key", { secretAccessKey: "hunter2" }, /accessKeyId.*secretAccessKey is given without it/],
    ["a misspelt option", { credential: provider }, /unknown option.*Did you mean credentials/],
    ["an option in capitals", { Client: client }, /unknown option.*Did you mean client/],
    ["an option in another case", { session_token: "hunter2" }, /unknown option.*Did you mean sessionToken/],
    ["an unknown option", { zzzzzzzzzz: 1 }, /Allowed: .*accessKeyId.*client, credentials, endpoint, requestHandler/],
    ["a secret in the query", { url: `${aws}?secretAccessKey=271828` }, /secretAccessKey.*cannot be in the URL/],
    ["a client in the query", { url: `${aws}?client=1` }, /client.*cannot be in the URL/],
    ["a client of S3", { client: new S3({ region: "eu-west-1" }) }, /client.*must be an SQSClient/],
    ["a client's options", { client: { region: "eu-west-1", send: () => {} } }, /client.*must be an SQSClient/],
    ["a request handler that cannot handle", { requestHandler: { handle: 1 } }, /requestHandler.*a request handler/],
    [
      "a misspelt option of one",
      { requestHandler: { httpAgnet: 1 } },
      /requestHandler.httpAgnet.*Did you mean httpAgent/
    ],
    [
      "two timeouts of requests",
      { requestHandler: { requestTimeout: 1 }, requestTimeout: 500 },
      /requestTimeout.*requestHandler.requestTimeout is given as well/
    ],
    [
      "two timeouts of connections",
      { requestHandler: { connectionTimeout: 1 }, url: `${aws}?connectTimeout=500` },
      /connectTimeout.*requestHandler.connectionTimeout is given as well/
    ],
    ["a secret with a slash", { url: "sqs://AK:hunter2/a+b@h:1?region=eu-west-1" }, /Percent-encode.*%2F/],
    ["one that looks like a port", { url: "sqs://AK:12/hunter2@h:1?region=eu-west-1" }, /Percent-encode/],
    ["a token without a key", { sessionToken: "hunter2" }, /sessionToken.*needs an access key/],
    ["a client and credentials", { client, credentials: provider }, /credentials.*client is given/],
    ["a client and a key", { client, accessKeyId, secretAccessKey: "hunter2" }, /accessKeyId.*client is given/],
    ["a client and a server", { client, url: server }, /url.*names a server/],
    ["a client and connectTimeout", { client, connectTimeout: 1000 }, /connectTimeout.*client is given/],
    [
      "a function and a key",
      { credentials: provider, accessKeyId, secretAccessKey: "hunter2" },
      /credentials.*as well/
    ],
    ["two endpoints", { endpoint: "http://h", url: server }, /endpoint.*as well/]
  ])("%s", async ([, options, expected]) => {
    const error = await fail({ url: aws, ...options })
    assert.instanceOf(error, ConfigurationError.ConfigurationError)
    assert.match(error.message, expected)
    assert.notInclude(`${error.message} ${inspect(error)}`, "hunter2")
  })

  test("a request handler's timeout counts for the whole call as well", () => {
    const settings = Result.getOrThrow(SqsOptions.decode({ url: server, requestHandler: { requestTimeout: 60_000 } }))
    assert.strictEqual(settings.requestTimeout, 60_000)
  })

  test("a client whose region never comes is refused", async () => {
    const hangs = new SQSClient({ region: () => new Promise<string>(() => {}) })
    const { message } = await fail({ url: aws, client: hangs, requestTimeout: 100 })
    assert.match(message, /client.*its region cannot be read/)
  })

  test("no printed option shows a token", () => {
    const settings = Result.getOrThrow(
      SqsOptions.decode({ url: server, accessKeyId, secretAccessKey, sessionToken: "hunter2" })
    )
    assert.notInclude(inspect(settings, { depth: 9 }), "hunter2")
    assert.notInclude(JSON.stringify(settings), "hunter2")
  })
})
