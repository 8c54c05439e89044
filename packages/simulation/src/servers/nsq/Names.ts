/** https://github.com/nsqio/nsq/blob/v1.3.0/internal/protocol/names.go */
export const isValid = (name: string): boolean => name.length <= 64 && /^[.a-zA-Z0-9_-]+(#ephemeral)?$/.test(name)
