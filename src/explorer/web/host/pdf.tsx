import { Binary } from '../preview/binary.tsx'

/** In a host, the pages of a PDF are not drawn: its text is shown instead. */
export const Pdf: typeof import('../preview/pdf.tsx').Pdf = ({ bytes }) => <Binary bytes={bytes} size={undefined} />
