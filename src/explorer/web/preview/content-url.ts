/** Returns an address under which the page shows a content. `releaseUrl` gives it back. */
export function createUrl(content: Uint8Array | string, type: string): string {
  return URL.createObjectURL(new Blob([content as BlobPart], { type }))
}

export function releaseUrl(url: string): void {
  URL.revokeObjectURL(url)
}
