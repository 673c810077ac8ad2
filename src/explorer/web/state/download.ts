import { fileNameOf } from './content-link.ts'

/** Whether files can be saved from here. */
export const canDownload = (): boolean => true

/** Lets the browser fetch a file from this server and save it. */
export function downloadFrom(name: string, url: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = fileNameOf(name)
  link.click()
}

/** Hands a file to the browser: never as what it could run or show by itself. */
export function download(name: string, content: string | Uint8Array): void {
  const blob = new Blob([content as BlobPart], { type: 'application/octet-stream' })
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = fileNameOf(name)
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
