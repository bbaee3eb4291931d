/* library_private.h: files that scenarios name: of the library, or by a path. Private to scenarios/. */
#ifndef PC_SCENARIOS_LIBRARY_PRIVATE_H
#define PC_SCENARIOS_LIBRARY_PRIVATE_H

#include "engine/error.h"
#include "engine/hash.h"
#include "scenarios/library.h"
#include "scenarios/place.h"
#include "scenarios/schema.h"
#include "scenarios/setting.h"
#include "scenarios/tree.h"
#include "storage/text.h"

#include <stdbool.h>

/* What embed.py makes of the files. */
extern const pc_library_file *const pc_library_embedded[PC_LIBRARY_KINDS];
extern const int pc_library_embedded_count[PC_LIBRARY_KINDS];

/* A text of the library or of a file, and where the names in it count from. */
typedef struct pc_library_text {
    pc_tree tree;
    pc_place place;
    char *folder;  /* `place` borrows it */
    pc_text notes; /* of a foreign file: what it does not say and we do not model; empty of others */
} pc_library_text;

/* The text behind a name, or behind a path that can be reached from `place`; its tree has the schema. A model may also
 * be a config.json of Hugging Face, or its folder: then the tree is what that becomes (scenarios/import/hf.h). Free
 * with pc_library_text_free. */
pc_code pc_library_open(pc_library_kind kind, const char *name, const pc_place *place, const pc_schema *schema,
                        pc_library_text *text, pc_error *error);
void pc_library_text_free(pc_library_text *text);

/* The title of such a text; "" if there is none. */
void pc_library_title(const pc_tree *tree, char title[PC_TITLE_SIZE]);

/* A model's file: its keys as a setting, to be merged under what a scenario says itself. The setting borrows the texts
 * of the tree; its precision is looked up. */
struct pc_reference;
typedef struct pc_model_file {
    pc_tree tree;
    pc_setting setting;
    struct pc_reference *references; /* owned */
    pc_text notes;                   /* as of the text */
} pc_model_file;

pc_code pc_model_file_read(const char *name, const pc_place *place, pc_model_file *file, pc_error *error);
/* A software's file: settings of a cluster, but for what is trained, where and how it is cut; the same struct. */
pc_code pc_software_file_read(const char *name, const pc_place *place, pc_model_file *file, pc_error *error);
void pc_model_file_free(pc_model_file *file);

/* The model that a setting describes, with what follows where it says nothing; PC_ERROR_INPUT, and in `*culprit` the
 * key to blame, where something is missing or cannot be: PC_KEY_MODEL_END where the numbers do not go together.
 * cluster_model.c. */
pc_code pc_setting_model(const pc_setting *setting, pc_model *model, pc_key *culprit, pc_error *error);

/* A GPU of the library, or of a file; or, where there is none of that name, the GPU of the library's machine of that
 * name. */
pc_code pc_gpu_file_read(const char *name, const pc_place *place, pc_gpu *gpu, pc_error *error);

/* A machine's file, with the GPU that it names. `title` may be NULL. */
pc_code pc_machine_file_read(const char *name, const pc_place *place, pc_machine *machine, char title[PC_TITLE_SIZE],
                             pc_error *error);

/* What a GPU's file says of its measured kernels, and what its numbers stand on: `kernels`, `kernels_for`, `basis` and
 * `basis_date` (gpu_kernels.c). Of a tree with these keys in its schema. */
pc_code pc_gpu_kernels_read(const pc_tree *tree, pc_gpu *gpu, pc_error *error);

/* The library's profile that answers a run of this model on this GPU; NULL: none does, and the roofline answers. */
const char *pc_gpu_kernels_of(const pc_gpu *gpu, const pc_model *model);

/* Adds all numbers that such files have to a hash; of a machine its name, too, since messages say it, and its GPU. What
 * was measured of its transfers is the profile's. */
void pc_gpu_hash(const pc_gpu *gpu, pc_hash *hash);
void pc_machine_hash(const pc_machine *machine, pc_hash *hash);

#endif
