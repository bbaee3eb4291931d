/* pdf.h: private to results/: makes the PDF files that cairo writes the same from run to run. */
#ifndef PC_RESULTS_PDF_H
#define PC_RESULTS_PDF_H

/* Sets the time of creation in the PDF file at `descriptor`, open for reading and writing, to 1970. A file without one
 * stays as it is. Returns 0, or errno. */
int pc_pdf_clear_date(int descriptor);

#endif
