/** Whose request it is, for limits: the address of its socket, or what proxies that are trusted say of it. */
import { BlockList, isIP, isIPv6 } from "node:net"

/** Headers by which proxies tell of clients: who sends one is not this machine's user, but somebody behind a proxy. */
const forwarding = ["forwarded", "via", "x-real-ip"]

/** Whether a request came through a proxy that says so. */
export const isForwarded = (headers: Headers): boolean =>
  [...headers.keys()].some((name) => forwarding.includes(name) || name.startsWith("x-forwarded-"))

/** An address without the prefix of IPv4 in IPv6, zone and port. */
const plain = (address: string): string =>
  address
    .trim()
    .replace(/^\[(.*)\](?::\d+)?$/, "$1")
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
    .replace(/%.*$/, "")
    .replace(/^::ffff:(?=\d+\.)/i, "")

/** The network of an address: who has one of IPv6 has 2^64. */
const networkOf = (address: string): string => {
  if (!isIPv6(address)) return address
  const [before = [], behind = []] = address.split("::").map((part) => part.split(":").filter(Boolean))
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - behind.length) }, () => "0")
  return [...before, ...zeros, ...behind]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")
}

const family = (address: string) => (isIPv6(address) ? "ipv6" : "ipv4")

/** Whether a text is an address, or a network as `10.0.0.0/8`. */
export const isNetwork = (text: string): boolean => {
  const [address = "", bits, ...more] = text.split("/")
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  return most > 0 && more.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
}

/** Finds the client of a request, behind these proxies: the last in `X-Forwarded-For` that is none of them. */
export const make = (proxies: ReadonlyArray<string>) => {
  const trusted = new BlockList()
  for (const each of proxies) {
    const [address = "", bits] = each.split("/")
    if (bits === undefined) trusted.addAddress(address, family(address))
    else trusted.addSubnet(address, Number(bits), family(address))
  }
  const isTrusted = (address: string) => isIP(address) > 0 && trusted.check(address, family(address))
  return (socket: string, headers: Headers): string => {
    const told = (headers.get("x-forwarded-for") ?? "").split(",").map(plain)
    let client = plain(socket)
    while (isTrusted(client) && isIP(told.at(-1) ?? "") > 0) client = told.pop()!
    return networkOf(client)
  }
}
