#pragma once

#include "tidemark/account/declared_cap.h"
