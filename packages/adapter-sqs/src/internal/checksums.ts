/**
 * Checksums for the SDK: MD5 of each received body, and SHA-256 for signatures. Receiving ten messages and deleting
 * them takes ten and eight checksums. The SDK's classes create two Node objects for each, and convert keys slowly: a
 * signature takes 25 microseconds there and 4 here, an MD5 7 and 1. Every signature uses the same two keys, so the last
 * keys are kept as Node objects.
 */
import { createHmac, createSecretKey, hash, type KeyObject } from "node:crypto"

type Source = string | ArrayBuffer | ArrayBufferView

/** The SDK's interface. */
interface Checksum {
  readonly update: (chunk: Source) => void
  readonly digest: () => Promise<Uint8Array>
  readonly reset: () => void
}

const bytesOf = (source: Source): Buffer => {
  if (typeof source === "string") return Buffer.from(source)
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source)
}

/** Number of kept keys: a signature uses two, the first of a day five. The SDK also keeps its signing keys. */
const kept = 4

/** Makes keys, and keeps the last ones by their secrets, which the SDK never modifies. */
const keeping = (): ((secret: Source) => KeyObject) => {
  let keys: ReadonlyArray<{ readonly secret: Source; readonly key: KeyObject }> = []
  return (secret) => {
    const known = keys.find((each) => each.secret === secret)
    if (known !== undefined) return known.key
    const key = createSecretKey(bytesOf(secret))
    keys = [{ secret, key }, ...keys].slice(0, kept)
    return key
  }
}

/** Returns a class of checksums; HMACs if the secret is not empty. */
const checksum = (algorithm: string): new (secret?: Source) => Checksum => {
  const keyOf = keeping()
  return class implements Checksum {
    readonly #secret: Source | undefined
    #chunks: ReadonlyArray<Buffer> = []

    constructor(secret?: Source) {
      this.#secret = secret === "" ? undefined : secret
    }

    update(chunk: Source): void {
      this.#chunks = [...this.#chunks, bytesOf(chunk)]
    }

    async digest(): Promise<Uint8Array> {
      const [first = Buffer.of(), ...others] = this.#chunks
      const data = others.length === 0 ? first : Buffer.concat(this.#chunks)
      if (this.#secret === undefined) return hash(algorithm, data, "buffer")
      return createHmac(algorithm, keyOf(this.#secret)).update(data).digest()
    }

    reset(): void {
      this.#chunks = []
    }
  }
}

/** Whether Node has the algorithm. With FIPS it has no MD5; the SDK then computes it. */
const has = (algorithm: string): boolean => {
  try {
    hash(algorithm, "")
    return true
  } catch {
    return false
  }
}

/** Returns the checksum options of the SDK's client. */
export const checksums = () => ({
  sha256: checksum("sha256"),
  ...(has("md5") ? { md5: checksum("md5") } : {})
})
