import { fileNameOf } from './content-link.ts'

/** Whether the page can save files. */
export const canDownload = (): boolean => true

/** Lets the browser fetch a file from this server and save it. */
export function downloadFrom(name: string, url: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = fileNameOf(name)
  link.click()
}

/** Saves a file through the browser, never with a type that the browser could run or show. */
export function download(name: string, content: string | Uint8Array): void {
  const blob = new Blob([content as BlobPart], { type: 'application/octet-stream' })
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = fileNameOf(name)
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
