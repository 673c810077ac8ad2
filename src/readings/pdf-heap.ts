import type { WrappedPdfiumModule } from '@embedpdf/pdfium'

/** Memory of PDFium, which the types of the library leave out. `HEAPU8` is replaced when the memory grows. */
interface Heap {
  readonly HEAPU8: Uint8Array
  readonly wasmExports: { malloc(size: number): number; free(at: number): void }
}

export function heapOf({ pdfium }: WrappedPdfiumModule): Heap {
  return pdfium as unknown as Heap
}
