/** Returns an object URL of a content for the page. `releaseUrl` revokes it. */
export function createUrl(content: Uint8Array | string, type: string): string {
  return URL.createObjectURL(new Blob([content as BlobPart], { type }))
}

export function releaseUrl(url: string): void {
  URL.revokeObjectURL(url)
}
