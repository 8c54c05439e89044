import { SQSClient } from "@aws-sdk/client-sqs"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { checksums } from "../src/internal/checksums.ts"

const bytes = fc.uint8Array({ maxLength: 300 })
const chunk = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  bytes,
  // A part of a buffer.
  fc.uint8Array({ minLength: 20, maxLength: 300 }).map((each) => each.subarray(3, -4))
)
const secret = fc.option(
  fc.oneof(
    chunk,
    bytes.map((each) => each.slice().buffer)
  ),
  { nil: undefined }
)

/** The SDK's own classes, as a client has them whose options name none. */
const { md5, sha256 } = new SQSClient({ region: "eu-west-1" }).config
const ours = checksums()

const digestOf = async (Class: typeof ours.sha256, key: unknown, chunks: ReadonlyArray<unknown>) => {
  const checksum = new Class(key as never)
  for (const each of chunks) checksum.update(each as never)
  return Buffer.from(await checksum.digest()).toString("hex")
}

const agree = (Ours: typeof ours.sha256, theirs: unknown, secrets: fc.Arbitrary<unknown>) =>
  fc.assert(
    fc.asyncProperty(fc.array(chunk, { maxLength: 4 }), secrets, async (chunks, key) => {
      const expected = await digestOf(theirs as typeof ours.sha256, key, chunks)
      assert.strictEqual(await digestOf(Ours, key, chunks), expected)
    }),
    { numRuns: 200 }
  )

describe("checksums", () => {
  it("MD5 is that of the SDK's own class", () => agree(ours.md5!, md5, fc.constant(undefined)))

  it("SHA-256, with and without a secret, is that of the SDK's own class", () => agree(ours.sha256, sha256, secret))

  it("keys that come again, more of them than are kept, are those of their secrets", async () => {
    // More than are kept, texts that are equal and bytes that are: a key is that of a secret, whichever object holds it.
    const pool = Array.from({ length: 6 }, (_, n) => `secret ${n}`).flatMap((text) => [text, Buffer.from(text)])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...pool), { minLength: 1, maxLength: 30 }), async (secrets) => {
        for (const each of secrets)
          assert.strictEqual(
            await digestOf(ours.sha256, each, ["data"]),
            await digestOf(sha256 as never, each, ["data"])
          )
      }),
      { numRuns: 100 }
    )
  })

  it("a digest can be asked again, and begins anew after a reset", async () => {
    const checksum = new ours.sha256()
    checksum.update(Buffer.from("a"))
    const first = await checksum.digest()
    assert.deepStrictEqual(await checksum.digest(), first)
    checksum.reset()
    checksum.update(Buffer.from("a"))
    assert.deepStrictEqual(await checksum.digest(), first)
  })
})
