/* Our lists of names. */
#include "server/objects/names_impl.h"

#include "engine/base/str.h"

#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

static const char *const coco[] = {"person",        "bicycle",      "car",
                                   "motorcycle",    "airplane",     "bus",
                                   "train",         "truck",        "boat",
                                   "traffic light", "fire hydrant", "stop sign",
                                   "parking meter", "bench",        "bird",
                                   "cat",           "dog",          "horse",
                                   "sheep",         "cow",          "elephant",
                                   "bear",          "zebra",        "giraffe",
                                   "backpack",      "umbrella",     "handbag",
                                   "tie",           "suitcase",     "frisbee",
                                   "skis",          "snowboard",    "sports ball",
                                   "kite",          "baseball bat", "baseball glove",
                                   "skateboard",    "surfboard",    "tennis racket",
                                   "bottle",        "wine glass",   "cup",
                                   "fork",          "knife",        "spoon",
                                   "bowl",          "banana",       "apple",
                                   "sandwich",      "orange",       "broccoli",
                                   "carrot",        "hot dog",      "pizza",
                                   "donut",         "cake",         "chair",
                                   "couch",         "potted plant", "bed",
                                   "dining table",  "toilet",       "tv",
                                   "laptop",        "mouse",        "remote",
                                   "keyboard",      "cell phone",   "microwave",
                                   "oven",          "toaster",      "sink",
                                   "refrigerator",  "book",         "clock",
                                   "vase",          "scissors",     "teddy bear",
                                   "hair drier",    "toothbrush"};
static const char *const face[] = {"face"}, *const hand[] = {"hand"}, *const person[] = {"person"};
static const char *const face_points[] = {"right_eye", "left_eye",  "nose_tip",
                                          "mouth",     "right_ear", "left_ear"};
static const char *const hand_points[] = {
    "wrist",     "thumb_cmc", "thumb_mcp",  "thumb_ip",   "thumb_tip",  "index_mcp",  "index_pip",
    "index_dip", "index_tip", "middle_mcp", "middle_pip", "middle_dip", "middle_tip", "ring_mcp",
    "ring_pip",  "ring_dip",  "ring_tip",   "pinky_mcp",  "pinky_pip",  "pinky_dip",  "pinky_tip"};
static const char *const pose_points[] = {
    "nose",        "left_eye_inner",  "left_eye",        "left_eye_outer", "right_eye_inner",
    "right_eye",   "right_eye_outer", "left_ear",        "right_ear",      "mouth_left",
    "mouth_right", "left_shoulder",   "right_shoulder",  "left_elbow",     "right_elbow",
    "left_wrist",  "right_wrist",     "left_pinky",      "right_pinky",    "left_index",
    "right_index", "left_thumb",      "right_thumb",     "left_hip",       "right_hip",
    "left_knee",   "right_knee",      "left_ankle",      "right_ankle",    "left_heel",
    "right_heel",  "left_foot_index", "right_foot_index"};
static const char *const body_points[] = {
    "nose",           "left_eye",   "right_eye",   "left_ear",   "right_ear",   "left_shoulder",
    "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip",
    "right_hip",      "left_knee",  "right_knee",  "left_ankle", "right_ankle"};
static const struct ifd_bone hand_bones[] = {
    {0, 1},   {1, 2},   {2, 3},   {3, 4},   {0, 5},   {5, 6},   {6, 7},
    {7, 8},   {5, 9},   {9, 10},  {10, 11}, {11, 12}, {9, 13},  {13, 14},
    {14, 15}, {15, 16}, {13, 17}, {17, 18}, {18, 19}, {19, 20}, {0, 17}};
static const struct ifd_bone pose_bones[] = {
    {0, 1},   {1, 2},   {2, 3},   {3, 7},   {0, 4},   {4, 5},   {5, 6},   {6, 8},   {9, 10},
    {11, 12}, {11, 13}, {13, 15}, {15, 17}, {15, 19}, {15, 21}, {12, 14}, {14, 16}, {16, 18},
    {16, 20}, {16, 22}, {11, 23}, {12, 24}, {23, 24}, {23, 25}, {24, 26}, {25, 27}, {26, 28},
    {27, 29}, {28, 30}, {29, 31}, {30, 32}, {27, 31}, {28, 32}};
static const struct ifd_bone body_bones[] = {
    {0, 1},  {0, 2},  {1, 3},  {2, 4},   {5, 6},   {5, 7},   {7, 9},   {6, 8},
    {8, 10}, {5, 11}, {6, 12}, {11, 12}, {11, 13}, {13, 15}, {12, 14}, {14, 16}};

/* A list with its skeleton, if it has one. */
struct names {
    const char *name;
    const char *const *text;
    uint32_t count;
    const struct ifd_bone *bone;
    uint32_t bone_count;
};

static const struct names lists[] = {
    {"coco", coco, COUNT(coco), NULL, 0},
    {"face", face, COUNT(face), NULL, 0},
    {"hand", hand, COUNT(hand), NULL, 0},
    {"person", person, COUNT(person), NULL, 0},
    {"face_points", face_points, COUNT(face_points), NULL, 0},
    {"hand_points", hand_points, COUNT(hand_points), hand_bones, COUNT(hand_bones)},
    {"pose_points", pose_points, COUNT(pose_points), pose_bones, COUNT(pose_bones)},
    {"body_points", body_points, COUNT(body_points), body_bones, COUNT(body_bones)},
};

static const struct names *find(struct ifd_str name)
{
    const struct names *found = NULL;
    for (uint32_t i = 0; i < COUNT(lists) && !found; i++) {
        found = ifd_str_equal(name, lists[i].name) ? &lists[i] : NULL;
    }
    return found;
}

bool ifd_names_builtin(struct ifd_str name, const char *const **ret, uint32_t *ret_count)
{
    const struct names *found = find(name);
    if (found) {
        *ret = found->text;
        *ret_count = found->count;
    }
    return found;
}

bool ifd_bones_builtin(struct ifd_str name, const struct ifd_bone **ret, uint32_t *ret_count)
{
    const struct names *found = find(name);
    if (found) {
        *ret = found->bone;
        *ret_count = found->bone_count;
    }
    return found;
}
