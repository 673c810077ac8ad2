/** Number of bytes that become arguments of one call. */
const chunkBytes = 8192

export function base64Of(bytes: Uint8Array): string {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes)
    parts.push(String.fromCharCode(...bytes.subarray(at, at + chunkBytes)))
  return btoa(parts.join(''))
}
