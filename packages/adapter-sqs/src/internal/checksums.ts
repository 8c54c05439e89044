/**
 * Checksums for the SDK: MD5 of each received body, and SHA-256 for signatures. To receive ten messages and to delete them
 * takes ten and eight of them. The SDK's own classes make two objects of Node's for each, and Node takes long to see that a
 * key is none of its own: 25 microseconds for a signature's, 4 here; 7 for an MD5, 1 here. Every signature takes the same two
 * keys, so that the last ones are kept as Node has them.
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

/** Keys that are kept: a signature takes two, and the first of a day five. The SDK keeps those that it signs with as well. */
const kept = 4

/** Makes keys, and keeps the last ones by their secrets, which the SDK does not change. */
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

/** A class of checksums. With a secret that is not empty, they are HMACs. */
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

/** Whether Node has the algorithm: with FIPS it has no MD5, and the SDK computes its own. */
const has = (algorithm: string): boolean => {
  try {
    hash(algorithm, "")
    return true
  } catch {
    return false
  }
}

/** Options of the SDK's client. */
export const checksums = () => ({
  sha256: checksum("sha256"),
  ...(has("md5") ? { md5: checksum("md5") } : {})
})
